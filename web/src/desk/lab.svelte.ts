// What is the state of the Lab? What the model gives with the edits in the list, and how it is shown.
import { untrack } from "svelte";
import { inForce, type Edit } from "../lab/edits";
import { decode } from "../source/packet";
import { CHOICES } from "../source/wire";
import type { EditedInput, EditProofs, GeneratedText } from "../source/wire";
import { before } from "./waiting";
import type { Desk } from "./desk.svelte";
import { EditList } from "./edit_list.svelte";
import { sentence } from "./pane.svelte";

/** How many tokens the model writes before and after. */
const WRITTEN = 24;
const POLL = 700;

interface PairWords {
  first: string;
  second: string;
  difference: string;
  up: string;
  down: string;
}

const COMPARED: PairWords = {
  first: "first input",
  second: "second input",
  difference: "second − first",
  up: "larger in the second input",
  down: "larger in the first input",
};
const EDITED: PairWords = {
  first: "before",
  second: "after",
  difference: "after − before",
  up: "more after the edits",
  down: "less after the edits",
};

interface Named<T> {
  name: string;
  input: number;
  is: T;
}

export class LabDesk extends EditList {
  private answered: Named<EditedInput> | undefined = $state.raw();
  private refused: Named<string> | undefined = $state.raw();
  private written: Named<GeneratedText> | undefined = $state.raw();
  /** Edited inputs by number, and the inputs that they are made of. */
  private readonly origins: Record<number, number> = {};
  private renewed = -1;
  receipt: EditProofs | undefined = $state.raw();
  noReceipt = $state("");
  busy = $state(false);
  writing = $state(false);
  notWritten = $state("");

  readonly active: Edit[] = $derived.by(() => inForce(this.desk.picks.edits, this.desk.picks.input));
  /** Whether edits are in force for the picked input. */
  readonly on: boolean = $derived.by(() => this.able && this.active.length > 0);
  private readonly wanted: string = $derived.by(() => {
    const { input, labAt } = this.desk.picks;
    return this.on || (this.able && this.desk.needs("edits")) ? JSON.stringify([input, this.active, labAt]) : "";
  });

  /** What the model says of the picked input, with the latest edits that were answered. */
  readonly answer: EditedInput | undefined = $derived.by(() =>
    this.answered?.input === this.desk.picks.input && this.trouble === "" ? this.answered.is : undefined,
  );
  /** Whether the answer is that of the edits in the list. */
  readonly fresh: boolean = $derived.by(() => this.answered?.name === this.wanted);
  /** The answer while edits are in force. */
  readonly edited: EditedInput | undefined = $derived.by(() =>
    this.on && this.answer && this.answer.edits.length > 0 ? this.answer : undefined,
  );
  readonly trouble: string = $derived.by(() => (this.refused?.name === this.wanted ? this.refused.is : ""));
  readonly text: GeneratedText | undefined = $derived.by(() =>
    this.written?.name === this.wanted ? this.written.is : undefined,
  );

  /** Whether close-ups show before and after side by side. */
  readonly compares: boolean = $derived.by(() => this.edited !== undefined && this.desk.picks.labView === "difference");
  /** The input of the first pane, and of the second. */
  readonly first: number = $derived.by(() => {
    const { edited } = this;
    if (!edited || this.desk.picks.labView === "before") return this.desk.picks.input;
    return this.compares ? edited.plain : edited.input;
  });
  readonly second: number | null = $derived.by(() =>
    this.compares && this.edited ? this.edited.input : this.desk.picks.other,
  );

  /** The input of views that show one input only: the edited one, unless before is chosen. */
  readonly shown: number = $derived.by(() => (this.compares && this.edited ? this.edited.input : this.first));
  /** How the two panes are called, and their difference. */
  readonly words: PairWords = $derived.by(() => (this.compares ? EDITED : COMPARED));

  /** Create while a component is initialised. */
  constructor(protected readonly desk: Desk) {
    super();
    $effect(() => this.fetchInputs());
    $effect(() => {
      if (this.wanted !== "" && this.wanted !== this.answered?.name && this.trouble === "") untrack(() => this.run());
    });
    $effect(() => {
      if (this.answered && !this.receipt && this.noReceipt === "") untrack(() => this.fetchReceipt());
    });
  }

  /** What the status bar says of the edits. */
  get status(): string {
    const count = `${this.active.length} edit${this.active.length === 1 ? "" : "s"} on`;
    if (this.trouble) return this.trouble;
    return this.busy && !this.fresh ? `${count}, ${this.waits || "the model is running…"}` : count;
  }

  /** What the edits wait for on a busy server; empty if the model runs. */
  get waits(): string {
    const line = this.desk.queue.of("edit");
    return line && !line.running ? `waiting for the model, ${before(line.ahead)}` : "";
  }

  nextView(): void {
    const views = CHOICES.labView;
    if (this.on) this.desk.picks.labView = views[(views.indexOf(this.desk.picks.labView) + 1) % views.length];
  }

  /** Get the input that a number belongs to: its own, or that which an edited one is made of. */
  originOf(number: number | null): number | null {
    return number === null ? null : (this.origins[number] ?? number);
  }

  /** Ask until the answer is that of the edits in the list; a drag of a slider asks only as fast as answers come. */
  private async run(): Promise<void> {
    if (this.busy) return;
    this.busy = true;
    while (this.wanted !== "" && this.wanted !== this.answered?.name && this.trouble === "") await this.askOnce();
    this.busy = false;
  }

  private async askOnce(): Promise<void> {
    const [name, { input }] = [this.wanted, this.desk.picks];
    try {
      this.answered = { name, input, is: await this.sent(0) };
    } catch (error) {
      this.refused = { name, input, is: sentence(error) };
    }
  }

  private async sent(generate: number): Promise<EditedInput> {
    const { input, labAt: at } = this.desk.picks;
    const body = { input, edits: $state.snapshot(this.active), at, generate };
    const answer = decode<EditedInput>(await this.desk.source.ask("edit", body));
    for (const number of [answer.input, answer.plain]) this.origins[number] = input;
    return answer;
  }

  /** Ask anew for an edited input that the server no longer has, once; return whether this is one. */
  renew(number: number): boolean {
    const now = this.answered;
    if (!now || this.renewed === number || (now.is.input !== number && now.is.plain !== number)) return false;
    this.renewed = number;
    this.answered = undefined;
    return true;
  }

  /** Try again after a failure. */
  retry(): void {
    this.refused = undefined;
  }

  /** Let the model write on, before and after. */
  async write(): Promise<void> {
    const [name, { input }] = [this.wanted, this.desk.picks];
    [this.writing, this.notWritten] = [true, ""];
    try {
      const { text, notes } = await this.sent(WRITTEN);
      if (text) this.written = { name, input, is: text };
      else this.notWritten = notes.at(-1) ?? "the model writes no text";
    } catch (error) {
      this.notWritten = sentence(error);
    }
    this.writing = false;
  }

  /** Ask for the edit receipt until it is done; it is made in the background. */
  private async fetchReceipt(): Promise<void> {
    try {
      while (!this.receipt?.done) {
        if (this.receipt) await new Promise((resolve) => setTimeout(resolve, POLL));
        this.receipt = decode<EditProofs>(await this.desk.source.get("edit_receipt"));
      }
    } catch (error) {
      this.noReceipt = sentence(error);
    }
  }
}
