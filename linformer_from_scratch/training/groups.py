"""Parameters in groups, each with its learning rate: that of E and F suits the size of their numbers.

AdamW moves each number by about the learning rate, whatever its size. Those of a learned E are 1 / √seq_len
in size, so at the rate of the other weights E would change √seq_len times as fast.
"""

from collections.abc import Mapping

from torch import Tensor, nn

from linformer_from_scratch.projections import LearnedProjection, check_parameter

EPS = 1e-8  # of AdamW, as PyTorch has it


def parameter_groups(
    model: nn.Module,
    learning_rate: float,
    weight_decay: float = 0.01,
    lr_scale: Mapping[nn.Parameter, float] | None = None,
) -> list[dict]:
    """Groups for torch.optim.AdamW or Adam, in which a learned E moves as √seq_len · E would at that rate.

    So its rate is learning_rate / √seq_len; decay and eps are set so that they too act as they would there.
    (Equalised learning rates: Karras et al. 2018, arXiv 1710.10196, section 4.1.)

    Args:
        model: any module; all parameters but those of a LearnedProjection move at learning_rate.
        weight_decay: of matrices and embeddings; vectors, such as biases and those of norms, do not decay.
        lr_scale: parameters whose rate, but not their decay, is also multiplied by a number.

    Raises: ValueError if an E is computed, as by weight_norm: what it is computed from has other units.
    """
    units, scales = unit_of(model), lr_scale or {}
    kinds: dict[tuple[float, float, float], list[nn.Parameter]] = {}
    for parameter in model.parameters():
        decay = weight_decay if parameter.dim() > 1 else 0.0
        kinds.setdefault((decay, scales.get(parameter, 1.0), units.get(parameter, 1.0)), []).append(parameter)
    return [
        {
            "params": some,
            "lr": learning_rate * (factor := scale * unit),
            "weight_decay": decay / factor if factor else 0.0,
            "eps": EPS / unit,
        }
        for (decay, scale, unit), some in kinds.items()
    ]


def unit_of(model: nn.Module) -> dict[nn.Parameter, float]:
    """The unit of a parameter's numbers, where it is not 1: 1 / √seq_len for a learned E."""
    return {check_parameter(E): E.unit for E in model.modules() if isinstance(E, LearnedProjection)}


def total_norm(model: nn.Module) -> Tensor:
    """Norm of all gradients together; in place of an E's, that of √seq_len · E is counted."""
    units = unit_of(model)
    gradients = [(p.grad, units.get(p)) for p in model.parameters() if p.grad is not None]
    return nn.utils.get_total_norm([g if unit is None else unit * g for g, unit in gradients])
