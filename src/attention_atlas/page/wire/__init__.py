"""What do Python and the page send each other? The schema, declared once."""
