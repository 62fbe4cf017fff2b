"""Small PyTorch models and steps of the kind people write: the inputs of the tests on real code, and a part of demo.py."""

import torch
from torch import nn
from torch.nn import functional as F


def mlp(width=16):
    return nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, 4))


class BasicBlock(nn.Module):
    """The two-convolution block of ResNet."""

    def __init__(self, channels, out=None, stride=1):
        super().__init__()
        out = out or channels
        self.conv1 = nn.Conv2d(channels, out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.down = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out)) if out != channels or stride != 1 else None

    def forward(self, x):
        kept = x if self.down is None else self.down(x)
        x = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(x)) + kept)


class LSTM(nn.Module):
    """A loop over time around nn.LSTMCell."""

    def __init__(self, n_in=4, n_hidden=6):
        super().__init__()
        self.cell = nn.LSTMCell(n_in, n_hidden)
        self.n_hidden = n_hidden

    def forward(self, xs, state=None):
        h, c = state if state is not None else (xs.new_zeros(xs.shape[1], self.n_hidden),) * 2
        out = []
        for x in xs:
            h, c = self.cell(x, (h, c))
            out.append(h)
        return torch.stack(out), (h, c)


class Routed(nn.Module):
    """A loop over a ModuleList with keyword arguments and a branch on the shape."""

    def __init__(self, n=3, width=8):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(n))

    def forward(self, x, *, scale=1.0, skip=(), residual=True):
        for i, layer in enumerate(self.layers):
            if i in skip:
                continue
            y = layer(x) * scale
            if x.shape[0] > 4:
                y = torch.tanh(y)
            x = x + y if residual else y
        return x


class Recorder(nn.Module):
    """Appends to the caller's list and counts its steps."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.steps = 0

    def forward(self, x, log):
        self.steps += 1
        y = self.lin(x)
        log.append(y.shape[0])
        return y * 2


def with_print(x):
    y = torch.sin(x) + 1
    print("half way")
    return torch.cos(y) * 2


def sgd_step(model, x, target, rate):
    """One step of plain gradient descent: the loss, a 0-d tensor."""
    loss = F.mse_loss(model(x), target)
    grads = torch.autograd.grad(loss, list(model.parameters()))
    with torch.no_grad():
        for p, g in zip(model.parameters(), grads):
            p -= rate * g
    return loss.detach()
