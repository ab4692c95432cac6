"""Are directions that are iterated on a GPU those of the eigenvectors?"""

import torch

from attention_atlas.layout.pca import iterated_directions


def test_iterated_directions_carry_as_much_as_eigenvectors() -> None:
    dice = torch.Generator().manual_seed(0)
    vectors = torch.randn(4, 400, 64, generator=dice, dtype=torch.float64)
    vectors[0] *= torch.logspace(0, -6, 64)  # few directions carry all
    vectors[1] = vectors[1, :, :1] * vectors[1, :1]  # one direction alone
    vectors[2] = 0
    covariance = vectors.mT @ vectors
    for dims in (2, 3):
        found = iterated_directions(covariance, dims)
        carried = (found.mT @ covariance @ found).diagonal(dim1=1, dim2=2)
        wanted = torch.linalg.eigvalsh(covariance)[:, -dims:].flip(1)
        # The last head has no leading direction: 60 turns leave a 1e-4 there, whoever iterates.
        assert torch.allclose(carried, wanted, rtol=1e-4, atol=1e-9 * float(wanted.max()))
        own = found[[0, 1, 3]].mT @ found[[0, 1, 3]]
        assert torch.allclose(own, torch.eye(dims, dtype=own.dtype).expand_as(own), atol=1e-9)
