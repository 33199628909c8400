"""From a Python function to native code: front end, passes, code generation, the declared pipeline, and the driver that
specialises and caches.
"""
