"""What needs several of the other folders: building an atlas, measuring with a model, the demo."""
