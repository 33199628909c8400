/** A plot has no frames of its own: its samples come with each. */
FRAMES_OF.plot = class {
  capture() {
    return { message: {}, buffers: [] };
  }
  kept() {
    return { message: {}, buffers: [] };
  }
  obey() {
    return false;
  }
};
