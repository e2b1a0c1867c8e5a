"""What backups of state cost: the figures of Sl-Stream's paper, redrawn on this machine."""
