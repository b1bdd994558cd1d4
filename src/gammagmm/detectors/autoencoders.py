"""PyOD's auto-encoders with the same training steps in less time; needs PyTorch."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pyod.models import auto_encoder, vae
from pyod.models.base_dl import BaseDeepLearningDetector
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

__all__ = ["AE", "VAE"]

# PyOD's defaults are a progress bar and the seed 42. An unset seed is set by the caller.
_DEFAULTS = {"verbose": 0, "random_state": None}
# The values that the layers below support, of parameters that a detector may have. With a capacity
# of 0 the divergence in the loss of a VAE is 0, so it has no gradient.
_KNOWN = {"hidden_activation_name": "relu", "output_activation_name": "identity", "capacity": 0}
_BETAS = 0.9, 0.999  # Adam's defaults, which PyOD does not change
_ADAM = {"weight_decay", "adam_eps"}
_EPSILON = 1e-8  # PyOD adds it to every standard deviation, so that a constant column becomes 0
_SCORED_ROWS = 4096  # at a time, to limit the memory


class _Linear:
    """y = x W' + b; the gradients are written to those of the module's parameters."""

    def __init__(self, module: Any) -> None:
        self.module, self.weight, self.bias = module, module.weight.data, module.bias.data
        self.d_weight, self.d_bias = module.weight.grad, module.bias.grad

    def forward(self, x: Any) -> Any:
        self.x = x
        return torch.nn.functional.linear(x, self.weight, self.bias)

    def backward(self, dy: Any) -> Any:
        torch.mm(dy.t(), self.x, out=self.d_weight)
        torch.sum(dy, 0, out=self.d_bias)
        return torch.mm(dy, self.weight)


class _Norm(_Linear):
    """Batch normalisation by PyTorch's kernels; the forward one updates the running moments."""

    def forward(self, x: Any) -> Any:
        self.x, norm = x, self.module
        self.running = norm.running_mean, norm.running_var
        y, *self.moments = torch.native_batch_norm(
            x, self.weight, self.bias, *self.running, True, norm.momentum, norm.eps
        )
        return y

    def backward(self, dy: Any) -> Any:
        moments = *self.running, *self.moments, True, self.module.eps
        dx, d_weight, d_bias = torch.ops.aten.native_batch_norm_backward(
            dy, self.x, self.weight, *moments, [True, True, True]
        )
        self.d_weight.copy_(d_weight)
        self.d_bias.copy_(d_bias)
        return dx


class _Gate:
    """ReLU and dropout: y = x . gate, where the gate is 0 or 1 / (1 - rate)."""

    def __init__(self, rate: float) -> None:
        self.rate, self.kept = rate, torch.tensor(1 - rate)

    def forward(self, x: Any) -> Any:
        self.y = torch.dropout(x.relu_(), self.rate, True)
        return self.y

    def backward(self, dy: Any) -> Any:
        return dy * self.y.sign().div_(self.kept)


class _Sample:
    """z = mu + noise . sigma, where mu and log sigma^2 (clipped) are linear in x."""

    def __init__(self, model: Any) -> None:
        self.mu, self.logvar = _Linear(model.encoder_mu), _Linear(model.encoder_logvar)
        self.clip = model.logvar_clip or (-np.inf, np.inf)

    def forward(self, x: Any) -> Any:
        mu, logvar = self.mu.forward(x), self.logvar.forward(x)
        clipped = logvar.clamp(*self.clip)
        self.is_free = clipped == logvar
        self.sigma, self.noise = torch.exp(0.5 * clipped), torch.randn_like(mu)
        return mu + self.noise * self.sigma

    def backward(self, dz: Any) -> Any:
        d_logvar = 0.5 * (dz * self.noise * self.sigma) * self.is_free
        return self.mu.backward(dz) + self.logvar.backward(d_logvar)


def _layers(blocks: Any) -> Iterator[Any]:
    """Layers of the blocks of a PyOD encoder or decoder; a decoder's last block is linear."""
    for block in blocks:
        yield _Linear(getattr(block, "linear", block))
        if getattr(block, "batch_norm", False):
            yield _Norm(block.bn)
        if isinstance(getattr(block, "activation", None), torch.nn.ReLU):
            yield _Gate(block.dropout_rate)


def _flatten(model: Any) -> tuple[Any, Any]:
    """Two vectors; the parameters of `model` and their gradients become views of them."""
    parameters = list(model.parameters())
    values = torch.cat([parameter.detach().ravel() for parameter in parameters])
    gradient = torch.zeros_like(values)
    sizes = [parameter.numel() for parameter in parameters]
    parts = zip(parameters, values.split(sizes), gradient.split(sizes), strict=True)
    for parameter, part, d_part in parts:
        parameter.data, parameter.grad = part.view_as(parameter), d_part.view_as(parameter)
    return values, gradient


class _Trainer:
    """Minimises the mean squared error by Adam; PyTorch's Adam takes 1.7 seconds to import."""

    def __init__(self, model: Any, lr: float, **adam: float) -> None:
        self.lr, self.n_steps = lr, 0
        self.weight_decay, self.eps = adam.get("weight_decay", 0.0), adam.get("adam_eps", 1e-8)
        self.values, self.gradient = _flatten(model)
        self.mean, self.square, self.scale = (torch.zeros_like(self.values) for _ in range(3))
        sample = [_Sample(model)] if isinstance(model, vae.VAEModel) else []
        self.layers = [*_layers(model.encoder), *sample, *_layers(model.decoder)]

    def __call__(self, batch: Any) -> float:
        y = batch
        for layer in self.layers:
            y = layer.forward(y)
        residual = y - batch
        loss: float = residual.square().mean().item()
        dy = residual.mul_(2 / residual.numel())
        for layer in reversed(self.layers):
            dy = layer.backward(dy)
        self._descend(*_BETAS)
        return loss

    def _descend(self, beta1: float, beta2: float) -> None:
        self.n_steps += 1
        self.gradient.add_(self.values, alpha=self.weight_decay)
        self.mean.lerp_(self.gradient, 1 - beta1)
        self.square.mul_(beta2).addcmul_(self.gradient, self.gradient, value=1 - beta2)
        torch.sqrt(self.square, out=self.scale)
        self.scale.div_((1 - beta2**self.n_steps) ** 0.5).add_(self.eps)
        rate = self.lr / (1 - beta1**self.n_steps)
        self.values.addcdiv_(self.mean, self.scale, value=-rate)


class _Batches:
    """Batches of `size` rows in a new order for each epoch; a smaller last batch is left out."""

    def __init__(self, rows: Any, size: int) -> None:
        self.rows, self.size = rows, size

    def __iter__(self) -> Iterator[Any]:
        # A DataLoader draws a seed for its workers before the one for the order.
        _, seed = (torch.empty((), dtype=torch.int64).random_().item() for _ in range(2))
        order = torch.randperm(len(self.rows), generator=torch.Generator().manual_seed(seed))
        n_rows = len(order) - len(order) % self.size
        return iter(self.rows[order[:n_rows]].split(self.size))


@contextmanager
def _seeded_thread(random_state: int | None) -> Iterator[None]:
    """PyTorch on one thread with a seeded generator; both are restored afterwards."""
    n_threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        with torch.random.fork_rng(devices=[]):
            torch.seed() if random_state is None else torch.manual_seed(random_state)
            yield
    finally:
        torch.set_num_threads(n_threads)


def _constructor(original: Any) -> Callable[..., None]:
    """Constructor with the parameters of PyOD's class `original` and our `_DEFAULTS`."""
    parameters = inspect.signature(original.__init__).parameters.values()
    ours = [p.replace(default=_DEFAULTS.get(p.name, p.default)) for p in parameters]
    signature = inspect.Signature(ours)

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        given = signature.bind(self, *args, **kwargs)
        given.apply_defaults()
        # PyOD would replace None by the GPU that it finds.
        original.__init__(**given.arguments | {"device": "cpu"})
        self.device = given.arguments["device"]

    init.__signature__ = signature  # type: ignore[attr-defined]
    return init


class _Quick(BaseDeepLearningDetector):
    """Where AE and VAE differ from PyOD's classes."""

    @staticmethod
    def _set_seed(random_state: int | None) -> None:
        """Do nothing; PyOD's constructors call it to seed every generator of the process."""

    def fit(self, X: Any, y: Any = None) -> Any:
        """Fitted detector, on the rows X (n, d); `y` is ignored."""
        X = check_array(X, dtype=np.float64)
        if self.use_compile:
            raise ValueError(
                "use_compile=True is not supported here; use PyOD's own class instead."
            )
        if not 1 <= self.batch_size <= len(X):
            raise ValueError(
                f"batch_size must lie between 1 and {len(X)}, got {self.batch_size!r}."
            )
        self._set_n_classes(y)
        self.data_num, self.feature_size = X.shape
        self.X_mean, self.X_std = X.mean(axis=0), X.std(axis=0)
        with _seeded_thread(self.random_state):
            self.build_model()
            self.training_prepare()
            rows = torch.as_tensor(self._standardise(X), dtype=torch.float32)
            self.train(_Batches(rows, self.batch_size))
            self._keep_model()
            self.decision_scores_ = self.decision_function(X)
        return self._process_decision_scores()

    def training_prepare(self) -> None:
        """Replace PyOD's training step if the layers here support all parameters."""
        self.__dict__.pop("training_forward", None)  # left by an interrupted fit
        is_known = all(vars(self).get(name, value) == value for name, value in _KNOWN.items())
        is_adam = self.optimizer_name == "adam" and _ADAM.issuperset(self.optimizer_params)
        is_cpu = torch.device(self.device or "cpu").type == "cpu"
        if is_known and is_adam and is_cpu and self.batch_size > 1 and self.dropout_rate < 1:
            trainer = _Trainer(self.model, self.lr, **self.optimizer_params)
            self.training_forward = torch.inference_mode()(
                trainer
            )  # without the bookkeeping of gradients
        else:
            super().training_prepare()

    def decision_function(self, X: Any, batch_size: int | None = None) -> NDArray[np.float64]:
        """Scores (n,) of the rows X (n, d), computed for `batch_size` rows at a time."""
        check_is_fitted(self, "model")
        X = check_array(X, dtype=np.float64)
        if X.shape[1] != self.feature_size:
            raise ValueError(f"X must have {self.feature_size} features, got {X.shape[1]}.")
        with torch.inference_mode():
            blocks = torch.from_numpy(self._standardise(X)).split(batch_size or _SCORED_ROWS)
            return torch.cat([(self._reconstruct(z) - z).norm(dim=1) for z in blocks]).numpy()

    def set_weights(self, weights_of: Callable[..., NDArray[Any]]) -> None:
        """Make the network of a fitted detector; `weights_of` takes a name, a shape and a type."""
        with torch.device("meta"):  # no memory is taken for weights that are replaced
            self.build_model()
        given = {}
        for name, empty in self.model.state_dict().items():
            kind = np.float64 if empty.is_floating_point() else np.int64
            given[name] = torch.from_numpy(weights_of(name, empty.shape, kind))
        self.model.load_state_dict(given, assign=True)
        self._keep_model()

    def _standardise(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return (X - self.X_mean) / (self.X_std + _EPSILON) if self.preprocessing else X.copy()

    def _keep_model(self) -> None:
        """Remove what only training needs; float64 makes scores independent of the batch."""
        for name in ("optimizer", "training_forward"):
            self.__dict__.pop(name, None)
        self.model.requires_grad_(False).cpu().double().eval().zero_grad()


class AE(_Quick, auto_encoder.AutoEncoder):
    """PyOD's AutoEncoder, faster; with the same seed it gives the same scores up to rounding.

    The parameters are PyOD's, with other defaults: `verbose` is 0, and `random_state` is None,
    which means a new seed for each fit. With a `device` of None the CPU is used even if there is
    a GPU, so that the scores are the same on every machine.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(64, 3))
    >>> X[7] = 9.0
    >>> int(AE(epoch_num=2, random_state=0).fit(X).decision_scores_.argmax())
    7
    """

    __init__ = _constructor(auto_encoder.AutoEncoder)

    def _reconstruct(self, rows: Any) -> Any:
        return self.model(rows)


class VAE(_Quick, vae.VAE):
    """PyOD's VAE, faster, with scores from the decoded latent mean instead of a random draw.

    A row therefore always has the same score. The defaults differ from PyOD's as those of `AE` do.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(64, 3))
    >>> detector = VAE(epoch_num=2, random_state=0).fit(X)
    >>> np.allclose(detector.decision_function(X), detector.decision_scores_, rtol=1e-12)
    True
    """

    __init__ = _constructor(vae.VAE)

    def _reconstruct(self, rows: Any) -> Any:
        # Deviation D14: PyOD decodes a draw from the latent distribution, a new one at every call.
        return self.model.decode(self.model.encode(rows)[0])
