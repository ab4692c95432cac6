"""Do the numbers of many states come back as they were?"""

import numpy as np
import torch

from attention_atlas.measure.arrays import _in_one_copy, all_as_numpy


def test_tensors_in_one_copy_keep_their_shapes_and_numbers() -> None:
    tensors = [torch.arange(6).reshape(2, 3), torch.tensor(2.5), torch.zeros(0, 4), torch.ones(3)]
    for copied, tensor in zip(_in_one_copy(tensors), tensors, strict=True):
        assert copied.shape == tuple(tensor.shape)
        assert np.array_equal(copied, tensor.double().numpy())


def test_states_of_both_libraries_come_back_in_order() -> None:
    states = [(np.arange(2), torch.tensor(3.0)), (torch.arange(2),)]
    first, second = all_as_numpy(states)
    assert first[0].tolist() == [0, 1] and float(first[1]) == 3.0
    assert second[0].tolist() == [0, 1]
