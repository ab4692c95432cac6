// How methods are called on screen, and spans of time.
export const METHODS: Record<string, string> = { umap: "UMAP", tsne: "t-SNE", pca: "PCA" };

export function took(seconds: number): string {
  if (seconds < 90) return `${Math.max(1, Math.round(seconds))} s`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}
