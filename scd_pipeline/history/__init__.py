"""Pure transformations of frames: change records become stored differences, versions, row actions and transitions."""
