"""Side-by-side runs against other tools; results with date and machine beside them."""
