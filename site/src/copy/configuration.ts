// The same objective as settings of TRL's GRPOConfig and of verl's actor, and what they cannot say.

import { hasParam } from '../catalog/catalog';
import type { Operation, Setting } from '../catalog/types';
import { valueOf, type State } from '../state/state';

export const NAMED = {
  params: [
    'aggregation', 'surrogate', 'ratio_level', 'clip_ratio_low', 'clip_ratio_high', 'clip_ratio_c', 'ratio_max', 'kl_coefficient', 'kl_estimator',
    'kl_weight', 'entropy_coefficient', 'sapo_temperature_positive', 'sapo_temperature_negative', 'vespo_k_positive', 'vespo_lambda_positive',
    'vespo_k_negative', 'vespo_lambda_negative', 'advantage_estimator',
  ],
};

/** Whether an operation is the composition that these trainers configure. */
export function isConfigurable(operation: Operation): boolean {
  return NAMED.params.every((name) => hasParam(operation, name));
}

interface Written {
  settings: [name: string, value: Setting][];
  /** What the library has no setting for. */
  missing: string[];
}

type Read = (name: string) => Setting;

/** TRL's loss types by surrogate and aggregation; the ratio level is a setting of its own. */
function trlLossType(read: Read): string | null {
  const surrogate = read('surrogate');
  if (surrogate === 'cispo' || surrogate === 'sapo' || surrogate === 'vespo') return surrogate;
  if (surrogate !== 'ppo_clip') return null;
  const types: Record<string, string> = { seq_mean_token_mean: 'grpo', token_mean: 'dapo', seq_mean_token_sum_norm: 'dr_grpo', seq_mean_token_sum: 'luspo' };
  return types[String(read('aggregation'))] ?? null;
}

function trlSettings(read: Read): Written {
  const missing: string[] = [];
  const settings: Written['settings'] = [];
  const lossType = trlLossType(read);
  if (lossType) settings.push(['loss_type', lossType]);
  else missing.push(`no loss_type has the surrogate ${read('surrogate')} with ${read('aggregation')}`);
  const level = read('ratio_level');
  if (level === 'token' || level === 'sequence') settings.push(['importance_sampling_level', level]);
  else if (lossType !== 'vespo') missing.push(`no importance_sampling_level is ${level}`);
  const [low, high] = [read('clip_ratio_low'), read('clip_ratio_high')];
  if (low !== null) settings.push(['epsilon', low]);
  if (high !== low) settings.push(['epsilon_high', high]);
  if (read('ratio_max') !== null) settings.push(['delta', read('ratio_max')]);
  if (read('clip_ratio_c') !== null) missing.push('no dual clip (clip_ratio_c)');
  settings.push(['beta', read('kl_coefficient')]);
  if (read('kl_coefficient') !== 0) {
    if (read('kl_estimator') !== 'k3') missing.push(`the KL estimator is k3, not ${read('kl_estimator')}`);
    settings.push(['use_bias_correction_kl', read('kl_weight') !== 'none']);
  }
  const scale = { group_mean_std: 'group', batch_std: 'batch', group_mean: 'none' }[String(read('advantage_estimator'))];
  if (scale) settings.push(['scale_rewards', scale]);
  if (lossType === 'sapo') settings.push(['sapo_temperature_pos', read('sapo_temperature_positive')], ['sapo_temperature_neg', read('sapo_temperature_negative')]);
  if (lossType === 'vespo') {
    settings.push(['vespo_k_pos', read('vespo_k_positive')], ['vespo_lambda_pos', read('vespo_lambda_positive')]);
    settings.push(['vespo_k_neg', read('vespo_k_negative')], ['vespo_lambda_neg', read('vespo_lambda_negative')]);
  }
  return { settings, missing };
}

function verlSettings(read: Read): Written {
  const missing: string[] = [];
  const settings: Written['settings'] = [];
  const modes: Record<string, string> = {
    ppo_clip: 'vanilla', cispo: 'cispo', sapo: 'sapo', gmpo: 'geo_mean', clip_cov: 'clip_cov', kl_cov: 'kl_cov', reinforce: 'gpg', dppo_tv: 'dppo_tv', dppo_kl: 'dppo_kl', dro: 'dro',
  };
  const level = read('ratio_level');
  const surrogate = String(read('surrogate'));
  const mode = surrogate === 'ppo_clip' && level === 'sequence_token' ? 'gspo' : modes[surrogate];
  if (mode) settings.push(['policy_loss.loss_mode', mode]);
  else missing.push(`no loss_mode is the surrogate ${surrogate}`);
  if (level !== 'token' && mode !== 'gspo' && mode !== 'geo_mean') missing.push(`no loss_mode has the ratio level ${level}`);
  const aggregations: Record<string, string> = { token_mean: 'token-mean', token_sum: 'token-sum', seq_mean_token_sum: 'seq-mean-token-sum', seq_mean_token_mean: 'seq-mean-token-mean', seq_mean_token_sum_norm: 'seq-mean-token-sum-norm' };
  const aggregation = aggregations[String(read('aggregation'))];
  if (aggregation) settings.push(['loss_agg_mode', aggregation]);
  else missing.push(`no loss_agg_mode is ${read('aggregation')}`);
  if (read('clip_ratio_low') !== null) settings.push(['clip_ratio_low', read('clip_ratio_low')]);
  settings.push(['clip_ratio_high', read('clip_ratio_high')]);
  if (read('clip_ratio_c') !== null) settings.push(['clip_ratio_c', read('clip_ratio_c')]);
  else if (mode === 'vanilla') missing.push('the dual clip cannot be switched off; a large clip_ratio_c comes close');
  if (read('ratio_max') !== null) missing.push('no cap of the ratio (ratio_max)');
  const coefficient = read('kl_coefficient');
  settings.push(['use_kl_loss', coefficient !== 0]);
  if (coefficient !== 0) {
    const types: Record<string, string> = { k1: 'kl', abs: 'abs', k2: 'mse', k3: 'low_var_kl', k1_plus: 'kl+', abs_plus: 'abs+', k3_plus: 'k3+' };
    settings.push(['kl_loss_coef', coefficient], ['kl_loss_type', types[String(read('kl_estimator'))] ?? null]);
    if (read('kl_weight') !== 'none') missing.push('the KL term is not weighted by the ratio');
  }
  settings.push(['entropy_coeff', read('entropy_coefficient')]);
  if (surrogate === 'sapo') settings.push(['tau_pos', read('sapo_temperature_positive')], ['tau_neg', read('sapo_temperature_negative')]);
  return { settings, missing };
}

export function trl(operation: Operation, state: State): string {
  const { settings, missing } = trlSettings((name) => valueOf(state, name));
  const lines = [`# ${operation.title} as trl.GRPOConfig`, ...missing.map((what) => `# TRL: ${what}.`), 'from trl import GRPOConfig', '', 'config = GRPOConfig('];
  for (const [name, value] of settings) lines.push(`    ${name}=${value === true ? 'True' : value === false ? 'False' : JSON.stringify(value)},`);
  return `${[...lines, ')'].join('\n')}\n`;
}

export function verl(operation: Operation, state: State): string {
  const { settings, missing } = verlSettings((name) => valueOf(state, name));
  const lines = [`# ${operation.title} as overrides of verl's trainer`, ...missing.map((what) => `# verl: ${what}.`)];
  for (const [name, value] of settings) lines.push(`actor_rollout_ref.actor.${name}=${value === true ? 'True' : value === false ? 'False' : value}`);
  return `${lines.join('\n')}\n`;
}
