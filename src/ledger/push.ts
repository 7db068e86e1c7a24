/** Where a peer wants to hear of its task. What proves us to it there is never shown and never logged. */
export interface NewPush {
  /** Names the configuration here and, with a notification's number, each notification. */
  readonly pushId: string;
  /** Its name among those of the task, as the peer knows it. */
  readonly configId: string;
  /** URL of the agent that sends. */
  readonly agent: string;
  readonly url: string;
  /** Of the URL: what hangs there holds up nothing that goes elsewhere. */
  readonly origin: string;
  readonly token: string | null;
  readonly scheme: string | null;
  readonly credentials: string | null;
}

/** `ended`: its endpoint has said that it is gone. */
export interface PushConfig extends NewPush {
  readonly tenant: string;
  readonly taskId: string;
  readonly state: 'active' | 'ended';
  /** The process that delivers its notifications now. */
  readonly holder: string | null;
  /** UTC, when its oldest notification is to be tried; `null` where none waits. */
  readonly dueAt: string | null;
  /** Counts its changes. */
  readonly rev: number;
  readonly createdAt: string;
}

/**
 * One event of a task on its way to one configuration, written in the transaction of the event itself. It goes when it is delivered; `dead`: it
 * could not be delivered, and waits for a person.
 */
export interface Notification {
  readonly tenant: string;
  readonly pushId: string;
  /** Version of the task that the event made: the order of delivery. */
  readonly seq: number;
  /** The StreamResponse as it is sent. */
  readonly body: string;
  readonly state: 'waiting' | 'dead';
  /** UTC, of the event. */
  readonly at: string;
  /** UTC, from when on the time counts after which it is given up. */
  readonly since: string;
  readonly tries: number;
  readonly triedAt: string | null;
  /** Why the last try failed. */
  readonly reason: string | null;
}

/** A notification as it is listed: with where it goes, without what it says. */
export interface NotificationEntry extends Omit<Notification, 'body'> {
  readonly taskId: string;
  readonly configId: string;
  readonly origin: string;
  /** UTC, of the next try of its configuration. */
  readonly dueAt: string | null;
}

/** Which notifications are listed; all of a tenant where nothing is said. */
export interface NotificationFilter {
  readonly state?: Notification['state'];
  readonly pushId?: string;
  readonly limit?: number;
}

/** What a change of a task tells those who asked to hear of it. */
export interface Announcement {
  /** The StreamResponse, as JSON. */
  readonly event?: string;
  /** A configuration that came with the message; it hears of this change already. */
  readonly push?: NewPush;
}

export interface AddPushCommand {
  readonly tenant: string;
  readonly peer: string;
  readonly taskId: string;
  readonly push: NewPush;
  /** Sent to it first, unless the configuration was there before. */
  readonly event?: string;
}

export interface RemovePushCommand {
  readonly tenant: string;
  readonly taskId: string;
  readonly configId: string;
}

/** A process takes configurations of its agent that have something to deliver. */
export interface PushClaim {
  readonly tenant: string;
  readonly agent: string;
  readonly holder: string;
  readonly limit: number;
  /** Origins to which this process has enough under way. */
  readonly without: readonly string[];
  /** What it works on, by `pushId`. Whatever else it holds it has lost sight of, and takes up again. */
  readonly working: readonly string[];
}

/** A configuration with its oldest notification. */
export interface DuePush {
  readonly push: PushConfig;
  readonly notification: Notification;
}

export interface SettleNotificationCommand {
  readonly tenant: string;
  readonly pushId: string;
  readonly seq: number;
  readonly holder: string;
  readonly outcome:
    | { readonly what: 'delivered' }
    | {
        readonly what: 'failed';
        readonly reason: string;
        /** Until the next try, milliseconds. */
        readonly againMs: number;
        /** A notification that is this old and fails is given up, milliseconds. */
        readonly giveUpMs: number;
      }
    /** The endpoint wants no more. */
    | { readonly what: 'gone' };
}

/** `lost`: it was not this process's any more, and nothing was changed. `next`: what the process, which keeps the claim, delivers now. */
export interface NotificationSettled {
  readonly became: 'delivered' | 'waiting' | 'dead' | 'lost';
  readonly next: DuePush | null;
}

/** Dead notifications of one agent: all, those of one configuration, or one; or only those last tried before a time. */
export interface DeadFilter {
  readonly tenant: string;
  readonly agent: string;
  readonly pushId?: string;
  readonly seq?: number;
  /** UTC. */
  readonly before?: string;
  readonly limit: number;
}
