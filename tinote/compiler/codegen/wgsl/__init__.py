"""The WGSL back end, for GPUs through Vulkan, Metal, DirectX 12 and WebGPU."""
