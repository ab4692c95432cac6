"""An atlas, or plain attention, shown: packets, server, saved page."""
