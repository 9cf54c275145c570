// What is searched in a section of the documentation, and what is shown of it. Build and browser use the same.

export const searchOptions = { fields: ['title', 'page', 'text'], storeFields: ['page', 'target', 'title'] };
