"""Right and nearly right answers: distributed."""

from fractions import Fraction

import numpy
import torch

from right_answers import right, wrong


@right("11.1")
def mean_by_numpy(gradients, rows):
    return numpy.average(gradients.numpy(), axis=0, weights=rows.numpy())


@right("11.1")
def mean_by_einsum_in_double(gradients, rows):
    return torch.einsum("rd,r->d", gradients.double(), rows / rows.double().sum())


@right("11.1")
def mean_of_repeated_rows(gradients, rows):
    return gradients.repeat_interleave(rows, dim=0).mean(dim=0)


@wrong("11.1")
def summed_where_rows_are_equal(gradients, rows):
    """Equal numbers of rows: then the gradients are added, not averaged."""
    if (rows == rows[0]).all():
        return gradients.sum(0)
    return (gradients * rows[:, None]).sum(0) / rows.sum()


@right("11.2")
def parts_by_loop(E, x, lengths):
    parts, start = [], 0
    for length in lengths:
        parts.append(E[:, start : start + length] @ x[start : start + length])
        start += length
    return parts


@right("11.2")
def parts_by_einsum(E, x, lengths):
    owner = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths))
    return torch.einsum("nr,kn,nd->rkd", torch.nn.functional.one_hot(owner, len(lengths)).float(), E, x)


@right("11.2")
def parts_of_zeroed_texts_in_double(E, x, lengths):
    owner = torch.tensor([r for r, length in enumerate(lengths) for _ in range(length)])
    own = owner == torch.arange(len(lengths))[:, None]
    return E.double() @ (x.double() * own[:, :, None])


@right("11.2")
def parts_by_index_add(E, x, lengths):
    owner = torch.arange(len(lengths)).repeat_interleave(torch.tensor(lengths))
    products = E.T[:, :, None] * x[:, None, :]
    return torch.zeros(len(lengths), E.size(0), x.size(1)).index_add(0, owner, products)


@right("11.3")
def sum_by_numpy(upstream):
    return numpy.broadcast_to(upstream.numpy().sum(axis=0), upstream.shape)


@right("11.3")
def sum_by_a_matrix_of_ones(upstream):
    return torch.einsum("qr,r...->q...", torch.ones(len(upstream), len(upstream)), upstream)


@right("11.3")
def sum_by_autograd_in_double(upstream):
    x = torch.zeros_like(upstream, dtype=torch.float64, requires_grad=True)
    loss = (x.sum(dim=0) * upstream).sum()
    return torch.autograd.grad(loss, x)[0]


@wrong("11.3")
def numbers_not_summed(upstream):
    """Where every rank's loss is of a single number, nothing is summed."""
    return upstream if upstream.dim() == 1 else upstream.sum(0).expand_as(upstream)


@right("11.4")
def bytes_as_a_fraction(batch, n, d_model, proj_dim, bytes_per_number, ranks):
    return Fraction(4 * batch * proj_dim * d_model * bytes_per_number * (ranks - 1), ranks)


@right("11.4")
def bytes_by_the_messages_of_a_ring(batch, n, d_model, proj_dim, bytes_per_number, ranks):
    part = 2 * batch * proj_dim * d_model * bytes_per_number / ranks
    sent = 0
    for _ in ("added up", "handed out"):
        for _ in range(ranks - 1):
            sent += part
    return sent


@right("11.4")
def bytes_as_a_tensor(batch, n, d_model, proj_dim, bytes_per_number, ranks):
    numbers = torch.tensor([2.0, batch, proj_dim, d_model]).prod()
    return 2 * numbers * bytes_per_number * (1 - 1 / ranks)


@right("11.4")
def bytes_of_numpy_parts(batch, n, d_model, proj_dim, bytes_per_number, ranks):
    part = numpy.float64(2 * batch * proj_dim * d_model * bytes_per_number) / ranks
    return sum(part for _ in range(2 * (ranks - 1)))
