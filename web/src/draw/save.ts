// How is a figure saved as a file?

function offer(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

export function saveSvg(svg: string, name: string): void {
  offer(new Blob([svg], { type: "image/svg+xml" }), `${name}.svg`);
}

/** Save a PNG of twice the size on screen, to print well; less if it does not fit on a canvas. */
export async function savePng(svg: string, name: string): Promise<void> {
  const picture = new Image();
  const address = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  picture.src = address;
  await picture.decode();
  URL.revokeObjectURL(address);
  const scale = Math.min(2, 16_000 / picture.height, 16_000 / picture.width);
  const canvas = document.createElement("canvas");
  canvas.width = picture.width * scale;
  canvas.height = picture.height * scale;
  canvas.getContext("2d")?.drawImage(picture, 0, 0, canvas.width, canvas.height);
  const blob = await new Promise<Blob | null>((done) => canvas.toBlob(done, "image/png"));
  if (!blob) throw new Error("the picture is too large for a PNG in this browser; export it as SVG");
  offer(blob, `${name}.png`);
}
