// A plot without a simulation above it.

export default {
  render({ model, el }) {
    return simulationView({ model, el, stage: null, show: () => [], repaint: () => {} });
  },
};
