// What virtual machines run under, as the operator of a host chooses. `auto`: KVM where it works, else TCG. `kvm`: nothing but KVM.

export const acceleratorSettings = ['auto', 'kvm', 'tcg'] as const;
export type AcceleratorSetting = (typeof acceleratorSettings)[number];
