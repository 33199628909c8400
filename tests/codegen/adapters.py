"""A software adapter to check WGSL with: Mesa's Vulkan driver for CPUs."""

from __future__ import annotations

from functools import cache
from typing import Any

import wgpu
from wgpu.backends.wgpu_native.extras import set_instance_extras

set_instance_extras(backends=["Vulkan"])


@cache
def device() -> Any:
    """A device with everything that the adapter has."""
    adapter = wgpu.gpu.request_adapter_sync(force_fallback_adapter=False)
    wanted = [name for name in ("shader-f64", "shader-int64") if name in adapter.features]
    return adapter.request_device_sync(required_features=wanted)


def validate(text: str) -> None:
    """Raises what the compiler of shaders says against a module."""
    device().create_shader_module(code=str(text))
