// What the scenes use of three.js; the rest of it is left out of the bundle.
export {
  BufferAttribute,
  BufferGeometry,
  Camera,
  DoubleSide,
  GLSL3,
  InstancedBufferAttribute,
  InstancedBufferGeometry,
  Mesh,
  RawShaderMaterial,
  Scene,
  WebGLRenderer,
} from "three";
