"""The shader that fills and copies views of memory: each invocation handles an element, or a word of a run.

There are sixteen words of parameters. There are four axes; missing ones have extent 1 and come first.

    fill    byte of the first element, elements, bytes of each, 0;  extents;  strides in bytes;  low and high word, 0, 0
    copy    word of the first run, word that it comes from, words of a run, words of all;  extents;  strides of the
            target in words;  strides of the source in words
"""

from tinote.runtime.layout import WORKGROUP

ENTRIES = ("fill", "copy")
#: Words of the parameters of both.
PARAM_WORDS = 16
#: The byte offset of the two words with the fill value.
VALUE_BYTE = 48

TEXT = f"""\
@group(0) @binding(0) var<uniform> params: array<vec4<u32>, 4>;
@group(0) @binding(3) var<storage, read_write> arena: array<atomic<u32>>;
fn place(k: u32, extents: vec4<u32>, strides: vec4<u32>) -> u32 {{
  var left = k; var at = 0u;
  for (var axis = 3; axis >= 0; axis -= 1) {{
    at += left % extents[axis] * strides[axis];
    left /= extents[axis];
  }}
  return at;
}}
@compute @workgroup_size({WORKGROUP})
fn fill(@builtin(global_invocation_id) me: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {{
  let size = params[0].z;
  for (var k = me.x; k < params[0].y; k += groups.x * {WORKGROUP}u) {{
    let at = params[0].x + place(k, params[1], params[2]);
    if (size >= 4u) {{
      atomicStore(&arena[at / 4u], params[3].x);
      if (size == 8u) {{ atomicStore(&arena[at / 4u + 1u], params[3].y); }}
    }} else {{
      let by = 8u * (at % 4u); let mask = (1u << (8u * size)) - 1u;
      atomicAnd(&arena[at / 4u], ~(mask << by));
      atomicOr(&arena[at / 4u], (params[3].x & mask) << by);
    }}
  }}
}}
@compute @workgroup_size({WORKGROUP})
fn copy(@builtin(global_invocation_id) me: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {{
  let run = params[0].z;
  for (var k = me.x; k < params[0].w; k += groups.x * {WORKGROUP}u) {{
    let origin = params[0].y + place(k / run, params[1], params[3]) + k % run;
    atomicStore(&arena[params[0].x + place(k / run, params[1], params[2]) + k % run], atomicLoad(&arena[origin]));
  }}
}}
"""
