"""Where torch.compile makes a case wrong: stage, graph, pass, lowering, fusion, kernel."""
