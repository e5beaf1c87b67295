"""Model servers: chat and embeddings, their errors turned into ours, what was asked before kept."""
