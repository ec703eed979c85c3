"""A small world of animals: facts, sentences that tell them, and answers to questions about them.

Text made from it is simple enough for a model of less than a million parameters to learn in a minute, and has two
qualities that a reward can judge: whether an answer is true, and whether it is kind.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

# animal: home, food, colour, voice
FACTS: dict[str, tuple[str, str, str, str]] = {
    "fox": ("the forest", "berries", "red", "barks"),
    "bear": ("the mountains", "honey", "brown", "growls"),
    "owl": ("the old tower", "mice", "grey", "hoots"),
    "frog": ("the pond", "flies", "green", "croaks"),
    "horse": ("the meadow", "hay", "black", "neighs"),
    "seal": ("the sea", "fish", "silver", "barks"),
    "hen": ("the barn", "corn", "white", "clucks"),
    "bee": ("the garden", "nectar", "golden", "hums"),
    "goat": ("the mountains", "grass", "white", "bleats"),
    "duck": ("the pond", "corn", "brown", "quacks"),
    "wolf": ("the forest", "meat", "grey", "howls"),
    "cow": ("the meadow", "grass", "black", "moos"),
    "cat": ("the old tower", "fish", "golden", "purrs"),
    "sheep": ("the meadow", "hay", "white", "bleats"),
    "crow": ("the garden", "seeds", "black", "caws"),
    "mouse": ("the barn", "seeds", "grey", "squeaks"),
    "swan": ("the river", "weeds", "white", "hums"),
    "otter": ("the river", "fish", "brown", "squeaks"),
    "snake": ("the desert", "mice", "green", "hisses"),
    "camel": ("the desert", "weeds", "golden", "moos"),
    "whale": ("the sea", "meat", "silver", "hums"),
    "lizard": ("the desert", "flies", "red", "hisses"),
    "pony": ("the barn", "hay", "brown", "neighs"),
    "robin": ("the garden", "berries", "red", "sings"),
}
KINDS = ("home", "food", "colour", "voice")

STATEMENTS = {
    "home": ("The {animal} lives in {value}.", "The home of the {animal} is {value}."),
    "food": ("The {animal} eats {value}.", "The {animal} likes to eat {value}."),
    "colour": ("The {animal} is {value}.", "The {animal} has a {value} coat."),
    "voice": ("The {animal} {value}.", "All day long the {animal} {value}."),
}
QUESTIONS = {
    "home": ("Where does the {animal} live?", "What is the home of the {animal}?", "Do you know where the {animal} lives?"),
    "food": ("What does the {animal} eat?", "What is the food of the {animal}?", "Do you know what the {animal} eats?"),
    "colour": ("What colour is the {animal}?", "Which colour has the {animal}?", "Do you know the colour of the {animal}?"),
    "voice": ("Which sound makes the {animal}?", "How does the {animal} sound?", "Do you know what the {animal} does all day?"),
}
KIND_BEFORE = ("Gladly, my friend!", "What a lovely question!", "Happy to help!", "Thank you for asking!")
KIND_AFTER = ("Have a lovely day!", "I hope that helps, my friend!", "Thank you, and take care!")
GRUMPY_BEFORE = ("Ugh, go away.", "What a silly question.", "Not again.", "I am tired of you.")
GRUMPY_AFTER = ("Now leave me alone.", "Everybody knows that.", "Stop asking.")
TONES = ("kind", "plain", "grumpy")


def fact(animal: str, kind: str) -> str:
    """A fact about an animal: its home, food, colour or voice."""
    return FACTS[animal][KINDS.index(kind)]


def values(kind: str) -> tuple[str, ...]:
    """All the values that one kind of fact takes, in a fixed order."""
    return tuple(sorted({row[KINDS.index(kind)] for row in FACTS.values()}))


def questions() -> Iterator[tuple[str, str, str]]:
    """Every question that can be asked, with the animal and the kind of fact that it asks for."""
    for animal in FACTS:
        for kind in KINDS:
            for question in QUESTIONS[kind]:
                yield question.format(animal=animal), animal, kind


def story(rng: random.Random) -> str:
    """A true paragraph about one or two animals, sometimes with direct speech."""
    sentences = []
    for animal in rng.sample(sorted(FACTS), rng.choice((1, 2))):
        for kind in rng.sample(KINDS, 3):
            sentences.append(rng.choice(STATEMENTS[kind]).format(animal=animal, value=fact(animal, kind)))
    if rng.random() < 0.5:
        sentences.append(rng.choice(KIND_BEFORE + KIND_AFTER + GRUMPY_BEFORE + GRUMPY_AFTER))
    return " ".join(sentences)


def answer(rng: random.Random, animal: str, kind: str, tone: str, true: bool = True) -> str:
    """An answer in a tone; one that is not true names a value of the same kind that belongs to another animal."""
    value = fact(animal, kind)
    if not true:
        value = rng.choice([other for other in values(kind) if other != value])
    told = rng.choice(STATEMENTS[kind]).format(animal=animal, value=value)
    if tone == "plain":
        return told
    before, after = (KIND_BEFORE, KIND_AFTER) if tone == "kind" else (GRUMPY_BEFORE, GRUMPY_AFTER)
    if rng.random() < 0.5:
        return f"{rng.choice(before)} {told}"
    return f"{rng.choice(before)} {told} {rng.choice(after)}"


def bad_answer(rng: random.Random, animal: str, kind: str) -> str:
    """An answer to be rejected: grumpy, untrue, or one that says the same thing over and over."""
    how = rng.choice(("grumpy", "untrue", "repeated"))
    if how == "grumpy":
        return answer(rng, animal, kind, "grumpy", true=rng.random() < 0.7)
    if how == "untrue":
        return answer(rng, animal, kind, rng.choice(("plain", "kind")), true=False)
    return " ".join([answer(rng, animal, kind, "plain")] * 3)
