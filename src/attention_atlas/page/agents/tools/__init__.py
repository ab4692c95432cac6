"""What may an agent ask for? One file a tool."""
