// What to do when an instance does not exist: it may have another name, or be in another project.

export const seeInstances = '"berth ps" shows the instances, "berth ps -A" those of all projects';
