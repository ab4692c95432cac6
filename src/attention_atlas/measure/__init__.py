"""Step 2 of the flow: what is each head? Shapes, scores, comparisons; NumPy only."""
