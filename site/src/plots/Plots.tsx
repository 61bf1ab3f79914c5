// Which plots a formula has: each kind says from the description of the operation whether it applies.

import type { FunctionComponent } from 'preact';
import type { Operation } from '../catalog/types';
import { AggregationPlot, hasAggregation } from './AggregationPlot';
import { EstimatorPlot, hasEstimators } from './EstimatorPlot';
import { GaePlot, hasTraceDecay } from './GaePlot';
import { GridPlot, hasGrid } from './GridPlot';
import { GroupPlot, hasGroups } from './GroupPlot';
import { hasLengthPenalty, LengthPlot } from './LengthPlot';
import { hasMixtureFit, MixturePlot } from './MixturePlot';
import { hasRatioCurve, RatioPlot } from './RatioPlot';
import { ResponsePlot } from './ResponsePlot';
import { hasTargets, TargetPlot } from './TargetPlot';

interface Kind {
  applies: (operation: Operation) => boolean;
  View: FunctionComponent<{ operation: Operation }>;
}

const KINDS: Kind[] = [
  { applies: hasRatioCurve, View: RatioPlot },
  { applies: hasAggregation, View: AggregationPlot },
  { applies: hasEstimators, View: EstimatorPlot },
  { applies: hasMixtureFit, View: MixturePlot },
  { applies: hasGroups, View: GroupPlot },
  { applies: hasTraceDecay, View: GaePlot },
  { applies: hasLengthPenalty, View: LengthPlot },
  { applies: hasGrid, View: GridPlot },
  { applies: hasTargets, View: TargetPlot },
];

export function Plots({ operation }: { operation: Operation }) {
  return (
    <section class="card" aria-labelledby="plots-heading">
      <h2 id="plots-heading">Plots</h2>
      <div class="plots">
        {KINDS.filter(({ applies }) => applies(operation)).map(({ View }, index) => (
          <View key={index} operation={operation} />
        ))}
        <ResponsePlot operation={operation} />
      </div>
    </section>
  );
}
