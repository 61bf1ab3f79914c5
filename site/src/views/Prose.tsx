// A text of the catalog, with what stands between backticks as code.

export function Prose({ children }: { children: string }) {
  return <>{children.split('`').map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : part))}</>;
}
