"""What takes several rooms: build an atlas, measure it with its model, the demo."""
