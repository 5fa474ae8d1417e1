"""Find the step of torch.compile that makes a case wrong: stage, graph, pass, lowering, fusion, kernel."""
