// For tests: an authority in a folder, and certificates of it, made by openssl.

import { execFileSync } from 'node:child_process';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const newKey = '-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes';

export class TestAuthority {
  readonly #folder: string;
  readonly #name: string;

  /** The folder is there. Everybody may read what is put into it, keys too: daemons of other users have them. */
  constructor(folder: string, name: string) {
    this.#folder = folder;
    this.#name = name;
    this.#openssl(`req -x509 ${newKey} -keyout ${name}.key -out ${name}.pem -subj /CN=${name} -days 2`);
  }

  /** PEM file of the authority itself. */
  get ca(): string {
    return join(this.#folder, `${this.#name}.pem`);
  }

  /** For servers and clients. `names` as in `subjectAltName`. */
  issue(subject: string, names: string): { readonly cert: string; readonly key: string } {
    const file = `${this.#name}-${subject}`;
    this.#openssl(`req ${newKey} -keyout ${file}.key -out ${file}.csr -subj /CN=${subject}`);
    const extensions = `subjectAltName=${names}\nextendedKeyUsage=serverAuth,clientAuth\n`;
    writeFileSync(join(this.#folder, `${file}.ext`), extensions);
    const by = `-CA ${this.#name}.pem -CAkey ${this.#name}.key -CAcreateserial`;
    this.#openssl(`x509 -req -in ${file}.csr ${by} -out ${file}.pem -days 2 -extfile ${file}.ext`);
    const [cert, key] = [join(this.#folder, `${file}.pem`), join(this.#folder, `${file}.key`)];
    chmodSync(key, 0o644);
    return { cert, key };
  }

  #openssl(words: string): void {
    execFileSync('openssl', words.split(' '), { cwd: this.#folder, stdio: 'pipe' });
  }
}
