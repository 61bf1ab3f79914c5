// Light, dark, or as the system has it.

import { signal } from '@preact/signals';

export type Theme = 'auto' | 'light' | 'dark';

export const theme = signal<Theme>((document.documentElement.dataset.theme as Theme | undefined) ?? 'auto');

export function setTheme(next: Theme): void {
  theme.value = next;
  document.documentElement.dataset.theme = next;
  try {
    localStorage.setItem('theme', next);
  } catch {
    // Where storage is refused, the choice lasts as long as the page.
  }
}
