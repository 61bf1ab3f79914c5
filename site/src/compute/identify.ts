// Which formula, variant or mistake gives a printed number: asked of a worker.

import type { Answer, PrintedArray } from 'plumbline-rl/identify';
import type { Refusal } from './evaluate';

export type { Answer };

export interface Question {
  /** The batch under whatever names; gradients and the printed number may be among them. */
  inputs: Record<string, PrintedArray>;
  loss?: string;
  operation?: string;
  effort?: number;
}

/** So many points are looked at: `done` of this round's `of`. */
export interface Progress {
  tried: number;
  done: number;
  of: number;
}

/** What the worker says. */
export type Report = { progress: Progress } | { answer: Answer } | { refusal: Refusal };

export interface Listener {
  onProgress: (progress: Progress) => void;
  onAnswer: (answer: Answer) => void;
  onRefusal: (refusal: Refusal) => void;
}

/** Begin a search; what is returned ends it. */
export function search(question: Question, { onProgress, onAnswer, onRefusal }: Listener): () => void {
  const worker = new Worker(new URL('./identify.worker.ts', import.meta.url), { type: 'module' });
  worker.onmessage = ({ data }: MessageEvent<Report>) => {
    if ('progress' in data) return onProgress(data.progress);
    worker.terminate();
    if ('answer' in data) onAnswer(data.answer);
    else onRefusal(data.refusal);
  };
  worker.onerror = (event) => {
    worker.terminate();
    onRefusal({ message: event.message || 'the search could not start', argument: null, index: null });
  };
  worker.postMessage(question);
  return () => worker.terminate();
}
