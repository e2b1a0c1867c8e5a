"""The running part: coordinator, its socket, Spark's listener, pools and session."""
