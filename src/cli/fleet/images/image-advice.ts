// Advice that the commands of images share.

export const imageAdvice = { NotFound: '"berth image ls" shows the images' } as const;
