"""Which five states of the page does the demo lead through in the first minute?

Each step is a state of the page of `builtin:gpt` over the demo's sentences, as its
address writes it. Input 92 says a name twice; L4H5 finds what came after the first time.
"""

from attention_atlas.page.wire.about import StoryStep

_NAME = 92  # "Sarah Miller wrote a letter, and the letter was signed Sarah Miller."
_AGAIN = 20  # the second " M": "ill" came after the first

DEMO_STORY = (
    StoryStep(
        "Every head has a map.",
        "Each panel is one attention head. A dot is a word of the 210 sentences: green where it "
        "looks, pink where it is looked at. The number: of 100 green dots, so many have the word "
        "they look at most among the three pink ones nearest to them.",
        "tab=map",
    ),
    StoryStep(
        "One head, one word.",
        "This is head L4H5. The picked dot is “M” in the second “Sarah Miller”. Lines lead from "
        "the words of its sentence to what they look at; the sentence itself is on the right.",
        f"tab=map&mapHead=L4H5&heads=L4H5&input={_NAME}&pinned=true&lines=true"
        f"&token={{'side':'query','position':{_AGAIN}}}",
    ),
    StoryStep(
        "The same as lines.",
        "On the left the words that look, on the right the words looked at. The second “M” looks "
        "at “ill”, which came after the first “M”: this head finds how a repeated name goes on.",
        f"tab=text&view=head&heads=L4H5&input={_NAME}&pinned=true"
        f"&token={{'side':'query','position':{_AGAIN}}}",
    ),
    StoryStep(
        "What kind of head is it?",
        "Every head is measured. Colours are kinds; the card on the right tells the scores of "
        "L4H5, how sure they are, and which heads do alike.",
        f"tab=heads&heads=L4H5&input={_NAME}",
    ),
    StoryStep(
        "Take it out and see.",
        "Here L4H5 is switched off. After the second “M” the model was almost sure of “ill”; "
        "without this head it gives it about one in eight. Switch the edit off and on, or try "
        "another head.",
        f"tab=lab&heads=L4H5&input={_NAME}&labAt={_AGAIN}"
        "&edits=[{'edit':{'edit':'ablate','heads':['L4H5'],'by':'zero'},'on':true}]",
    ),
)
