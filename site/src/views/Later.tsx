// A view whose code is fetched when it is first opened.

import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { notice } from './notice';

export function Later({ load }: { load: () => Promise<ComponentType> }) {
  const [View, setView] = useState<ComponentType | null>(null);
  useEffect(() => {
    load().then(
      (loaded) => setView(() => loaded),
      () => (notice.value = 'This view could not be loaded: there is no network, and it has not been kept yet.'),
    );
  }, [load]);
  return View ? <View /> : null;
}
