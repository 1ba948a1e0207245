"""Results of nodes of a LangGraph graph: `StampNodeCache` and `node_key`."""
