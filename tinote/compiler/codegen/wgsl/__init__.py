"""WGSL: what GPUs run, by way of Vulkan, Metal, DirectX 12 and WebGPU."""
