// How do arrow keys walk a radio group?

/** Walk a radio group with arrow keys: the next option is picked and has the focus. */
export function radioKeys(event: KeyboardEvent): void {
  const step = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
  if (step === undefined || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
  const group = event.currentTarget as HTMLElement;
  const all = [...group.querySelectorAll<HTMLButtonElement>("[role=radio]:not(:disabled)")];
  const next = all[(all.indexOf(event.target as HTMLButtonElement) + step + all.length) % all.length];
  if (!next) return;
  next.focus();
  next.click();
  event.preventDefault();
  event.stopPropagation();
}
