"""Raw scores -> score space -> Gaussian mixture, by variational inference."""
