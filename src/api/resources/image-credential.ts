// Credentials for the private images of an instance: for which images, and the value of a secret of its project.

import { type Static, Type } from 'typebox';
import { imagePrefixLengthMax } from '../images/image-prefix.ts';
import { SecretReference } from './secret.ts';

const ImageCredential = Type.Object(
  {
    prefix: Type.String({
      minLength: 1,
      maxLength: imagePrefixLengthMax,
      description:
        'a registry or a URL, with whole path segments: registry.example.com/team, https://images.example.com/private',
    }),
    username: Type.Optional(
      Type.String({
        pattern: '^[^\\u0000-\\u001f\\u007f:]+$',
        maxLength: 256,
        description: 'of the password; without one the value is a bearer token, for a URL',
      }),
    ),
    ...SecretReference.properties,
  },
  { additionalProperties: false },
);
export type ImageCredential = Static<typeof ImageCredential>;

/** Of the spec of an instance or a job. */
export const imageCredentials = Type.Array(ImageCredential, {
  minItems: 1,
  maxItems: 16,
  description: 'for private images, by reference to values of secrets; the longest prefix wins',
});
