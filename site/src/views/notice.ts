// One line above the view: what is wrong with a link, for instance.

import { signal } from '@preact/signals';

export const notice = signal<string | null>(null);
