"""What does an agent get? Tools of the Model Context Protocol, and the page inside its chat."""
