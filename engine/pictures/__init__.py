"""Pictures of an arena as shapes, which an exporter writes as SVG or PNG."""
