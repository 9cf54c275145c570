// The part of noVNC that the dashboard uses; the package has no types.

declare module '@novnc/novnc' {
  export default class RFB extends EventTarget {
    constructor(target: HTMLElement, channel: WebSocket);
    scaleViewport: boolean;
    viewOnly: boolean;
    background: string;
    sendCtrlAltDel(): void;
    disconnect(): void;
  }
}
