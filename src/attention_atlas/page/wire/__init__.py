"""What crosses between Python and the page? The one schema."""
