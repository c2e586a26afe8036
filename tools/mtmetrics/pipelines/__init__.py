"""Productions of several stages that can be stopped at any point and go on where they were."""
