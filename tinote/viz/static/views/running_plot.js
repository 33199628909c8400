// A plot without a simulation above it.

export default laidOut(({ model, el }) =>
  simulationView({ model, el, stage: null, show: () => [], repaint: () => {} }),
);
